"""What commands print, for a person and for a program. Knows no command."""
