from reportlab.pdfgen import canvas

PAGE_SIZE = (595, 842)
MAX_LEN = 80
FONT_SIZE = 11
