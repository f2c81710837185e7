"""Model files: a folder for each format, each with the same modules (types, read, write, fields)."""
