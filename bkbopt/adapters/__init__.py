"""Adapters to other libraries, and the command line; no other module of the package imports them."""
