"""What every other package may use: clocks, errors, back-off, threads and files."""
