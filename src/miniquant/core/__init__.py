"""What every other room stands on: errors, atomic files, mapped reading, arrays. Knows no format."""
