from flask import Flask, request

app = Flask(__name__)
PAGE_SIZE = 50


@app.get("/items")
def items():
    return {"page": int(request.args.get("page", 1)), "size": PAGE_SIZE}


app.run(port=8080, threaded=True)
