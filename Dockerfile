# rechain on a CPU. `docker build -t rechain .`, then as docs/guide/container.md says.
FROM python:3.11-slim AS build

# Where pip finds packages, if not where it looks by itself: an index with torch's CPU builds makes the image small.
ARG PIP_INDEX_URL
ARG PIP_EXTRA_INDEX_URL
WORKDIR /build
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src src
RUN python -m venv /opt/rechain \
    && /opt/rechain/bin/pip install --no-cache-dir -c constraints.txt ".[parquet,stores,web]"

FROM python:3.11-slim

LABEL org.opencontainers.image.title="rechain" \
      org.opencontainers.image.description="Recover reasoning chains: the passages that lead from a question to its answer" \
      org.opencontainers.image.licenses="Apache-2.0"

# A fixed number, so that a volume can be given to it; files belong in /data, which is also its home.
RUN useradd --uid 10001 --user-group --no-create-home --home-dir /data --shell /usr/sbin/nologin rechain \
    && install --directory --owner=rechain --group=rechain /data
COPY --from=build /opt/rechain /opt/rechain

# Nothing is written beside the program, so that the root file system may be read-only.
ENV PATH="/opt/rechain/bin:$PATH" \
    HOME="/data" \
    PYTHONDONTWRITEBYTECODE="1" \
    PYTHONUNBUFFERED="1"
USER 10001:10001
WORKDIR /data
VOLUME /data
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s \
    CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8000/health', timeout=4).read()"]
ENTRYPOINT ["rechain"]
CMD ["serve", "--host", "0.0.0.0"]
