"""The machine: files that are whole, processes, devices, and how items stream through them."""
