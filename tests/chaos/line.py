"""One connection to a broker: requests go out without waiting, answers come in their order, None once it is cut."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from typing import Any

from rota.protocol.compiler import codec
from rota.protocol.header import read_response_header, request_header
from rota.protocol.registry import APIS

ANSWER_S_MAX = 20.0

Answer = asyncio.Future[Any]  # the response, or None when the connection broke before it


class Line:
    """Use `Line.open`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, client_id: str) -> None:
        self._reader, self._writer, self._client_id = reader, writer, client_id
        self._correlation = 0
        self._pending: deque[tuple[int, int, int, Answer]] = deque()
        self.is_cut = False
        self._listening = asyncio.get_running_loop().create_task(self._listen())

    @classmethod
    async def open(cls, address: str, client_id: str = "chaos") -> Line:
        host, _, port = address.rpartition(":")
        return cls(*await asyncio.open_connection(host, int(port)), client_id)

    def send(self, request: Any, version: int) -> Answer:
        answer: Answer = asyncio.get_running_loop().create_future()
        if self.is_cut:
            answer.set_result(None)
            return answer
        self._correlation += 1
        self._pending.append((request.KEY, version, self._correlation, answer))
        frame = request_header(request.KEY, version, self._correlation, self._client_id)
        frame += codec(type(request), version).encode(request)
        self._writer.write(len(frame).to_bytes(4, "big") + frame)
        return answer

    async def send_request(self, request: Any, version: int) -> Any:
        """The answer. Raises ConnectionError when the connection broke before it."""
        answer = await asyncio.wait_for(self.send(request, version), ANSWER_S_MAX)
        if answer is None:
            raise ConnectionError("cut")
        return answer

    def abort(self) -> None:
        """Drop the connection without waiting for its end."""
        self._writer.transport.abort()
        self._listening.cancel()

    async def close(self) -> None:
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()
        await self._listening

    async def _listen(self) -> None:
        try:
            while True:
                size = int.from_bytes(await self._reader.readexactly(4), "big")
                self._take(await self._reader.readexactly(size))
        except (asyncio.IncompleteReadError, OSError):
            self.is_cut = True
            for _, _, _, answer in self._pending:
                if not answer.done():
                    answer.set_result(None)

    def _take(self, frame: bytes) -> None:
        key, version, correlation, answer = self._pending.popleft()
        found, begin = read_response_header(frame, key, version)
        assert found == correlation, "an answer out of order"
        body, end = codec(APIS[key].response, version).decode(frame, begin)
        assert end == len(frame), "bytes behind the answer"
        if not answer.done():
            answer.set_result(body)
