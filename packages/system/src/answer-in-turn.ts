import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';

/** Unread bytes of one connection that this process may hold. Above this number, the connection is not read. */
const mostOfConnection = 4096;

/** Unread bytes of all connections of a server together. Above this number, a connection that sends more of them is closed. */
const mostOfServer = 16 * 1024 * 1024;

/** Pieces of one connection that are parsed in one turn of the event loop. */
const piecesInTurn = 16;

const lineFeed = 10;
const carriageReturn = 13;
const zero = 48;
const nothing = Buffer.alloc(0);

/** The bytes of one connection on their way to the parser. */
interface Gate {
  /** Called when the head of a request was parsed. */
  begin(request: IncomingMessage, response: ServerResponse): void;
  /** Stops this gate, because the connection gets another reader. */
  leave(): void;
}

/**
 * Makes a server answer the requests of a connection one after another: it has one request in progress for each connection. Node parses
 * everything that it reads, so a client that does not wait for answers could start thousands of requests with one packet. With this
 * function, the parser gets the next request only after the answer to the previous request, and until then the connection is not read. So
 * the client has to wait. Call this function before the server listens.
 */
export function answerInTurn(server: Server): void {
  const gates = new WeakMap<Duplex, Gate>();
  const held = { bytes: 0 };
  server.on('connection', (socket: Duplex) => {
    // The server itself announces a connection again if a tunnel ends in the server.
    gates.get(socket)?.leave();
    gates.set(socket, openGate(socket, held));
  });
  server.prependListener('request', (request: IncomingMessage, response: ServerResponse) =>
    gates.get(request.socket)?.begin(request, response),
  );
  const leave = (_request: IncomingMessage, socket: Duplex): void => gates.get(socket)?.leave();
  // Without a listener, Node closes the connection of CONNECT and handles a request with the header Upgrade like other requests. So add
  // `leave` only for an event for which other code has a listener, or adds one later.
  const waiting = new Set<string | symbol>(['connect', 'upgrade']);
  const onListener = (event: string | symbol): void => {
    if (waiting.delete(event)) server.prependListener(String(event), leave);
  };
  for (const event of waiting) if (server.listenerCount(event) > 0) onListener(event);
  server.on('newListener', onListener);
}

function openGate(socket: Duplex, held: { bytes: number }): Gate {
  // The listener with which Node passes the data of the connection to the parser.
  const parse = socket.listeners('data').at(-1) as (bytes: Buffer) => void;
  const lines = readLines();
  const resume = socket.resume.bind(socket);
  let rest: Buffer = nothing;
  let request: IncomingMessage | undefined;
  let isAnswered = true;
  /** Bytes of the body that are still expected; undefined if the request does not announce them. */
  let bodyBytes: number | undefined;
  let isOpen = true;
  let isFeeding = false;
  let isPaused = false;
  let later: NodeJS.Immediate | undefined;

  const hold = (bytes: Buffer): void => {
    held.bytes += bytes.length - rest.length;
    rest = bytes;
  };
  const inBody = (): boolean => request !== undefined && !request.complete && bodyBytes !== 0;
  const mustWait = (): boolean => !isAnswered && !inBody();

  /** Returns how many bytes the parser may get at once: never the end of one message and the beginning of the next one. */
  const nextPiece = (): number => {
    if (!inBody()) return lines.toEmptyLine(rest);
    return bodyBytes === undefined ? lines.toLastChunk(rest) : Math.min(bodyBytes, rest.length);
  };

  const feedLater = (): void => {
    later ??= setImmediate(() => {
      later = undefined;
      feed();
    });
  };

  /** Gives the parser as much as it may have now. */
  const feed = (): void => {
    if (isFeeding || later !== undefined) return;
    isFeeding = true;
    for (let pieces = 0; isOpen && rest.length > 0 && !mustWait(); pieces += 1) {
      if (pieces === piecesInTurn) {
        feedLater();
        break;
      }
      const length = nextPiece();
      const piece = rest.subarray(0, length);
      hold(rest.subarray(length));
      if (bodyBytes !== undefined && inBody()) bodyBytes -= length;
      parse(piece);
    }
    isFeeding = false;
    if (!isOpen) return;
    if (rest.length > mostOfConnection && !isPaused) {
      socket.pause();
      isPaused = true;
    } else if (rest.length === 0 && isPaused) {
      isPaused = false;
      resume();
    }
  };

  const onData = (bytes: Buffer): void => {
    hold(rest.length === 0 ? bytes : Buffer.concat([rest, bytes]));
    feed();
    if (held.bytes > mostOfServer && rest.length > 0) socket.destroy();
  };
  const drop = (): void => {
    isOpen = false;
    clearImmediate(later);
    hold(nothing);
  };

  // Node resumes the connection whenever a request is read, even if the request is complete.
  socket.resume = () => (isPaused ? socket : resume());
  socket.on('data', onData);
  socket.off('data', parse);
  socket.once('close', drop);
  return {
    begin(next, response) {
      if (!isAnswered) return void socket.destroy();
      request = next;
      isAnswered = false;
      const announced = next.headers['content-length'];
      bodyBytes =
        announced === undefined || next.headers['transfer-encoding'] !== undefined ? undefined : Number(announced);
      response.once('close', () => {
        if (request !== next) return;
        isAnswered = true;
        // The other connections come first. Answers that need no wait would otherwise follow each other in one turn of the event loop.
        if (rest.length > 0) feedLater();
      });
    },
    leave() {
      if (!isOpen) return;
      const unread = rest;
      drop();
      socket.off('data', onData);
      socket.off('close', drop);
      socket.resume = resume;
      if (isPaused) resume();
      if (unread.length > 0) socket.unshift(unread);
    },
  };
}

/** Finds the places where a message can end. Remembers the line that the previous bytes began. */
function readLines() {
  /** First byte of the current line; undefined if the line is empty. */
  let first: number | undefined;
  /** True if a line of this message began with a zero. */
  let hasZero = false;

  /** Returns the number of bytes up to the end of the first empty line that ends a message; all bytes if there is none. */
  const toEnd = (bytes: Buffer, needsZero: boolean): number => {
    for (let at = 0; ; ) {
      const end = bytes.indexOf(lineFeed, at);
      const start = bytes[at];
      const isEmpty =
        at === end || start === undefined || (start === carriageReturn && (at + 1 === end || at + 1 === bytes.length));
      if (!isEmpty) first ??= start;
      if (end === -1) return bytes.length;
      const isEnd = first === undefined && (!needsZero || hasZero);
      hasZero ||= first === zero;
      first = undefined;
      at = end + 1;
      if (isEnd) return at;
    }
  };

  return {
    /** Returns where a head ends. */
    toEmptyLine: (bytes: Buffer): number => {
      hasZero = false;
      return toEnd(bytes, false);
    },
    /**
     * A place where a body in chunks (RFC 9112, 7.1) may end: the last chunk has the size 0, and trailers and an empty line follow it. After
     * a line that looks like this chunk, each empty line is such a place.
     */
    toLastChunk: (bytes: Buffer): number => toEnd(bytes, true),
  };
}
