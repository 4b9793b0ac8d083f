"""What layers compute beside convolutions and pools."""
