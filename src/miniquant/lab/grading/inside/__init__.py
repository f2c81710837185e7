"""What runs inside the walls, beside the student's code: no lesson, no oracle, no case, no comparison."""
