"""What all our HTML pages share: how they are assembled, their frame, styles and scripts."""
