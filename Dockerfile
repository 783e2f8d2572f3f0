# The same base for both stages, so that the environment finds the interpreter it was made with.
ARG BASE=python:3.11-slim

FROM ${BASE} AS build
WORKDIR /src
COPY requirements/ requirements/
# Everything comes from the lock files: what builds the wheel, then what runs beside it.
RUN python -m venv /opt/build \
    && /opt/build/bin/pip install --no-cache-dir --require-hashes --requirement requirements/dev.txt \
    && python -m venv --without-pip /opt/specbudget \
    && /opt/build/bin/pip --python /opt/specbudget/bin/python install --no-cache-dir --require-hashes \
        --requirement requirements/runtime.txt
COPY pyproject.toml README.md LICENSE ./
COPY exporter/ exporter/
RUN /opt/build/bin/python -m hatchling build --target wheel --directory /tmp/wheel \
    && /opt/build/bin/pip --python /opt/specbudget/bin/python install --no-cache-dir --no-deps /tmp/wheel/*.whl \
    && mkdir -p /empty

FROM ${BASE}
LABEL org.opencontainers.image.title="specbudget" \
      org.opencontainers.image.description="The two-model budget of speculative decoding: exporter and SLO sidecar" \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /opt/specbudget /opt/specbudget
COPY --from=build --chown=65532:65532 /empty /var/lib/specbudget
ENV PATH=/opt/specbudget/bin:$PATH \
    PYTHONUNBUFFERED=1
# A number, so that Kubernetes can see that it is not root.
USER 65532:65532
WORKDIR /var/lib/specbudget
EXPOSE 9877
# For a bare engine of containers; Kubernetes uses its own probes. With TLS on the listener, switch it off.
HEALTHCHECK --interval=30s --timeout=3s --start-period=10s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:9877/-/healthy', timeout=2)"]
ENTRYPOINT ["specbudget"]
CMD ["serve", "--listen", "0.0.0.0:9877", "--budget", "/etc/specbudget/budget.yaml", "--state", "/var/lib/specbudget"]
