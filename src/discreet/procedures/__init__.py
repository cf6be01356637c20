"""What the procedures share: arguments checked, one run through the door, progress on a terminal."""
