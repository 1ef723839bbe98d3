"""What a cluster's controller decides: functions from an image and an event to the next image. Pure."""
