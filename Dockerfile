# syntax=docker/dockerfile:1

FROM --platform=$BUILDPLATFORM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod \
    go mod download
COPY . .
ARG TARGETOS TARGETARCH
# Static, without paths of this stage; with .git in the context, `optimist version` tells the revision.
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/cache/go-build \
    CGO_ENABLED=0 GOCACHE=/cache/go-build GOOS=$TARGETOS GOARCH=$TARGETARCH go build -trimpath -ldflags='-s -w' -o /out/optimist ./cmd/optimist && \
    mkdir -p /out/state

FROM scratch
LABEL org.opencontainers.image.title="optimist" \
      org.opencontainers.image.description="A reverse proxy for Elasticsearch and OpenSearch that loses no concurrent update" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /src/LICENSE /LICENSE
COPY --from=build /out/optimist /optimist
# For STATE_DIRECTORY and TMPDIR, the only folder that optimist writes to: a volume that is mounted here has its owner.
COPY --from=build --chown=65532:65532 /out/state /var/lib/optimist
# Nobody's number: there are no names here.
USER 65532:65532
# Clients come from other containers. The admin listener stays on this one's loopback, where HEALTHCHECK asks it, unless
# OPTIMIST_ADMIN says otherwise, which needs OPTIMIST_ADMIN_TOKEN_FILE.
ENV OPTIMIST_LISTEN=0.0.0.0:9280
# There is no /tmp. A volume at this folder keeps large answers on a disk, which a tmpfs would keep in memory.
ENV TMPDIR=/var/lib/optimist
EXPOSE 9280
HEALTHCHECK --interval=10s --timeout=3s --start-period=5s --retries=3 CMD ["/optimist", "mode"]
# SIGTERM, the default, drains: give it more time than the longest request, see stop_grace_period in compose.yaml.
ENTRYPOINT ["/optimist"]
CMD ["serve"]
