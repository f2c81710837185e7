"""Tools for authors of labs: the cells of an exercise, made from its lesson."""
