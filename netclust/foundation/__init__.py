"""The ground floor: files, optional libraries and text that is safe to show."""
