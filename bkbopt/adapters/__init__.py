"""Native citizens of other libraries: thin translations onto the optimizer's parts. Nothing imports them."""
