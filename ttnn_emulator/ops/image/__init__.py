"""Operations on images beside convolutions and pools."""
