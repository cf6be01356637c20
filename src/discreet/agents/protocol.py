"""The Model Context Protocol over standard input and output: a program of this machine starts us, and asks."""

from __future__ import annotations

import io
import logging
import os
import select
import signal
from typing import Any, cast

import anyio
import mcp_types as types
from anyio.abc import TaskStatus
from anyio.streams.memory import MemoryObjectSendStream
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage

from discreet import __version__
from discreet.agents.tools import INSTRUCTIONS, TOOLS, Assistant, Tool

LARGEST = 262_144
"""Bytes of a message."""

MOST_WAITING = 16
"""How many calls wait for another; whoever calls then calls again."""


def serve(assistant: Assistant) -> None:
    """Answers until standard input ends, or a signal comes; what runs then is stored first. Standard output has the
    protocol alone."""
    try:
        anyio.run(_serve, assistant)
    except* (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
        pass  # whoever asked is gone


async def _serve(assistant: Assistant) -> None:
    logging.getLogger("mcp").setLevel(logging.CRITICAL + 1)  # what it logs may quote a question
    one = anyio.CapacityLimiter(1)
    waiting = 0

    async def listed(_: Any, __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_described(tool) for tool in TOOLS])

    async def called(_: Any, call: types.CallToolRequestParams) -> types.CallToolResult:
        nonlocal waiting
        tool = next((tool for tool in TOOLS if tool.name == call.name), None)
        if tool is None:
            raise MCPError(types.INVALID_PARAMS, f"there is no such tool; there are {', '.join(t.name for t in TOOLS)}")
        if waiting >= MOST_WAITING:
            raise MCPError(types.INTERNAL_ERROR, "too many calls wait; nothing was spent; call again")
        waiting += 1
        try:  # a call that is taken back goes on: what it measures is stored, and asked again it is free
            said = await anyio.to_thread.run_sync(assistant.call, tool, call.arguments or {}, limiter=one)
        finally:
            waiting -= 1
        text = types.TextContent(text=said.text)
        return types.CallToolResult(content=[text], structured_content=said.plain, is_error=said.failed)

    server = Server(
        "discreet", version=__version__, instructions=INSTRUCTIONS, on_list_tools=listed, on_call_tool=called
    )
    server.middleware.clear()  # nothing is told to whoever traces programs
    lines = _InputLines()
    stdin: Any = anyio.wrap_file(cast(Any, lines))  # of a file, what reads lines
    async with stdio_server(stdin=stdin) as (read, write), anyio.create_task_group() as tasks:
        await tasks.start(_ended, lines)
        inside, taken = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        tasks.start_soon(_taken, read, inside, write)
        await server.run(taken, write, server.create_initialization_options())
        tasks.cancel_scope.cancel()


async def _ended(lines: _InputLines, *, task_status: TaskStatus[None]) -> None:
    """A signal is the end of what comes."""
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        task_status.started()
        async for _ in signals:
            lines.end()


async def _taken(read: Any, inside: MemoryObjectSendStream[SessionMessage | Exception], write: Any) -> None:
    """Hands messages on; what is none is answered with an error of the protocol."""
    async with inside:
        async for item in read:
            if isinstance(item, SessionMessage):
                await inside.send(item)
                continue
            error = types.ErrorData(
                code=types.PARSE_ERROR, message=f"a message is a line of JSON-RPC, of at most {LARGEST:,} bytes"
            )
            await write.send(SessionMessage(types.JSONRPCError(jsonrpc="2.0", id=None, error=error)))


def _described(tool: Tool) -> types.Tool:
    hints = types.ToolAnnotations(
        title=tool.title,
        read_only_hint=not tool.spends,
        destructive_hint=tool.spends,  # what is spent does not come back
        idempotent_hint=True,  # asked again it is free, with the same numbers
        open_world_hint=False,
    )
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.input_schema,
        output_schema=tool.output_schema,
        annotations=hints,
    )


class _InputLines(io.TextIOBase):
    """Lines of a limited length, until standard input ends, or `end` is called: who reads waits in another thread."""

    def __init__(self) -> None:
        self._read = b""
        self._ended, self._ends = os.pipe()

    def end(self) -> None:
        """No line comes after those that were read."""
        os.write(self._ends, b"x")

    def readline(self, size: int | None = -1, /) -> str:  # type: ignore[override]  # noqa: ARG002
        """The next line; nothing at the end. For one that is too long comes another, which is no JSON."""
        too_long = False
        while b"\n" not in self._read:
            if len(self._read) > LARGEST:
                too_long, self._read = True, b""
            ready, _, _ = select.select([0, self._ended], [], [])
            piece = b"" if self._ended in ready else os.read(0, 65_536)
            if not piece:
                self._read = b""  # half a line
                return ""
            self._read += piece
        line, _, self._read = self._read.partition(b"\n")
        return "too long\n" if too_long or len(line) > LARGEST else line.decode("utf-8", "replace") + "\n"
