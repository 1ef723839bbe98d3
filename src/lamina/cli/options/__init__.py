"""Options and arguments that several commands share. Knows no command."""
