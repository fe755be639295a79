FROM python:3.11-slim

RUN useradd --system --uid 10001 --create-home --home-dir /data --shell /usr/sbin/nologin pillarbox

WORKDIR /app
COPY requirements requirements
COPY script script
COPY src src
# src links to these, and shows them under /docs.
COPY docs/guide docs/guide
COPY docs/images docs/images
# Installs the pinned packages into /app/.venv, as a checkout does.
RUN script/bootstrap runtime
COPY LICENSE README.md deploy/health.py ./
COPY --chmod=755 deploy/pillarbox /usr/local/bin/pillarbox

ENV PILLARBOX_DATA=/data \
    PILLARBOX_HTTP=0.0.0.0:8080 \
    PILLARBOX_SMTP=0.0.0.0:2525 \
    PILLARBOX_SUBMISSION=0.0.0.0:2587

USER pillarbox
VOLUME /data
EXPOSE 8080 2525 2587
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s \
    CMD ["/app/.venv/bin/python", "-I", "/app/health.py"]
ENTRYPOINT ["pillarbox"]
CMD ["serve"]
