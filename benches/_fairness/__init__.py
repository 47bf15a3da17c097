"""What benches of sharing need."""
