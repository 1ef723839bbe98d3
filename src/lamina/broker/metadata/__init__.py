"""Following the metadata store: the image, and what this broker does when it changes."""
