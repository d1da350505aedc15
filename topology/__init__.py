"""How far apart nodes are: linear order, switch trees, fat trees."""
