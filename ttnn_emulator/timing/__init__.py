"""The device's clock: how long programs take on a card, predicted from what they do and calibrated on silicon."""
