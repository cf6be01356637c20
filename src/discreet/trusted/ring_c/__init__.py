"""Ring C: measurements that are made of many steps, and the accounting for them."""
