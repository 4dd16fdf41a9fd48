# docker build --tag idfsmec .
# docker run --rm --volume "$PWD:/data" --user "$(id -u):$(id -g)" idfsmec features study.csv
FROM python:3.13-slim AS build
WORKDIR /source
COPY pyproject.toml README.md LICENSE constraints.txt ./
COPY src src
RUN python -m venv /opt/idfsmec \
    && /opt/idfsmec/bin/pip install --no-cache-dir --constraint constraints.txt \
        ".[bids,artifacts,spectra,connectivity,wrapper,dask]"

FROM python:3.13-slim
COPY --from=build /opt/idfsmec /opt/idfsmec
# Libraries keep their settings and compiled code in the home folder, which any user may write to.
ENV PATH=/opt/idfsmec/bin:$PATH \
    HOME=/home/idfsmec \
    MPLCONFIGDIR=/tmp/matplotlib \
    NUMBA_CACHE_DIR=/tmp/numba
RUN useradd --create-home --home-dir /home/idfsmec --uid 1000 idfsmec \
    && chmod 0777 /home/idfsmec
USER 1000
WORKDIR /data
ENTRYPOINT ["idfsmec"]
CMD ["--help"]
