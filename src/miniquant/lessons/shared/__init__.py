"""What the lessons of several labs use."""
