"""What users give to an optimizer, checked, as the objects that the search uses."""
