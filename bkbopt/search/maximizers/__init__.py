"""Maximisers of criteria over boxes, pools, pools in parts, and products."""
