"""What the server counts, in Prometheus' text format."""

from collections.abc import Iterable
from time import perf_counter

from fastapi import APIRouter, Request
from fastapi.responses import Response
from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rechain.web.site import Site

_METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))
_OTHER = "other"
"""stands for methods and paths that do not exist: who asks may invent any number of them"""
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
"""from a page of a list to the default time limit of a request"""

router = APIRouter(include_in_schema=False)


class Metrics:
    """The counts of one site, in a registry of its own, so that one process may have several sites."""

    def __init__(self, site: Site) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "rechain_requests", "Requests answered.", ("method", "route", "status"), registry=self.registry
        )
        self.seconds = Histogram(
            "rechain_request_seconds",
            "How long requests took.",
            ("method", "route"),
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.registry.register(_SiteCollector(site))
        ProcessCollector(registry=self.registry)  # memory, CPU time, open files


class _SiteCollector(Collector):
    """Reads what a site counts by itself."""

    def __init__(self, site: Site) -> None:
        self._site = site

    def collect(self) -> Iterable[Metric]:
        services = self._site.services
        recovered = CounterMetricFamily("rechain_questions_recovered", "Questions recovered, also those without chain.")
        recovered.add_metric((), sum(sum(service.outcomes.values()) for service in services))
        errors = CounterMetricFamily(
            "rechain_question_errors", "Questions without a chain, by reason.", labels=("code",)
        )
        for code in sorted({code for service in services for code in list(service.outcomes) if code}):
            errors.add_metric((code,), sum(service.outcomes[code] for service in services))
        corpus = self._site.corpus
        waiting = sum(service.waiting for service in services)
        return (
            recovered,
            errors,
            GaugeMetricFamily("rechain_questions_waiting", "Questions that wait or are being recovered.", waiting),
            GaugeMetricFamily("rechain_questions_served", "Questions of the file.", len(self._site.index)),
            GaugeMetricFamily("rechain_passages_indexed", "Passages of the index.", len(corpus.index) if corpus else 0),
            CounterMetricFamily("rechain_labels_written", "Labels written by this server.", self._site.labels.written),
        )


class Meter:
    """Counts requests, around everything else that stands before the application."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, and count it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status, began = 500, perf_counter()

        async def watch(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, watch)
        finally:
            method, route = scope["method"] if scope["method"] in _METHODS else _OTHER, _route(scope)
            self._metrics.requests.labels(method, route, str(status)).inc()
            self._metrics.seconds.labels(method, route).observe(perf_counter() - began)


def _route(scope: Scope) -> str:
    """Return the template of the route that has answered; what was refused before, or does not exist, has none."""
    if "route" in scope:
        return str(scope["route"].path)
    return "/static" if "endpoint" in scope and scope["path"].startswith("/static/") else _OTHER


@router.get("/metrics")
def metrics(request: Request) -> Response:
    """Return all counts; no coroutine, as questions that wait are counted under a lock."""
    return Response(generate_latest(request.app.state.metrics.registry), media_type=CONTENT_TYPE_LATEST)
