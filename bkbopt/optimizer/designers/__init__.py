"""A log with its designer: asking and telling on checked arguments, and how one is made, opened, copied and locked."""
