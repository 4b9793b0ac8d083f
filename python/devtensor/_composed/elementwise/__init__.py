"""What each element becomes, as formulas of compiled ops."""
