FROM python:3.11-slim

RUN useradd --system --create-home --home-dir /data --shell /usr/sbin/nologin pillarbox

WORKDIR /app
COPY requirements/runtime.txt requirements/runtime.txt
RUN pip install --no-cache-dir --disable-pip-version-check --require-hashes -r requirements/runtime.txt
COPY LICENSE README.md ./
COPY src src
RUN python -m compileall -q src

ENV PYTHONPATH=/app/src \
    PILLARBOX_DATA=/data \
    PILLARBOX_HTTP=0.0.0.0:8080 \
    PILLARBOX_SMTP=0.0.0.0:2525 \
    PILLARBOX_SUBMISSION=0.0.0.0:2587

USER pillarbox
VOLUME /data
EXPOSE 8080 2525 2587
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8080/health', timeout=4)"]
ENTRYPOINT ["python", "-P", "-m", "pillarbox"]
CMD ["serve"]
