scanimage --device "$1" --resolution 300 --mode Gray --format=tiff --batch=page%d.tif --batch-count 20
tesseract page1.tif out --dpi 300 -l eng
