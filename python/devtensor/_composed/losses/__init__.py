"""How far predictions are from targets."""
