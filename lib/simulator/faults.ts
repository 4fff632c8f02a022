import type { Socket } from "node:net";
import {
  data,
  errorCode,
  type FrameEvents,
  goaway,
  headers,
  initialWindowSize,
  message,
  readFrames,
  rstStream,
  settings,
  write,
} from "./frames.ts";

/** Treats one connection as a broken server does. `onCall` is to be told of each request. */
export type ConnectionFault = (socket: Socket, onCall: () => void) => void;

const grpcHeaders = { ":status": "200", "content-type": "application/grpc" };

/** Accepts and never says anything. It does read, or it would not see a client leave. */
export const hang: ConnectionFault = (socket) => void socket.resume();

/** Closes a connection before a word is said. */
export const close: ConnectionFault = (socket) => void socket.destroy();

/** Answers a client's first bytes with these and, unless it holds, hangs up. */
export function say(bytes: Uint8Array, { hold = false }: { readonly hold?: boolean } = {}): ConnectionFault {
  return (socket) => {
    socket.once("data", () => {
      write(socket, bytes);
      if (!hold) socket.end();
    });
    // The rest has to be read, or closing would be a reset that can take the answer with it.
    socket.resume();
  };
}

/** HTTP/2 up to the request; `act` is what becomes of it. */
export function onRequest(act: (socket: Socket, stream: number) => void): ConnectionFault {
  return (socket, onCall) => {
    readFrames(socket, {
      onPreface: () => write(socket, settings()),
      onRequest(stream) {
        onCall();
        act(socket, stream);
      },
    });
  };
}

/** Reads the request and never answers. */
export const hangCall = onRequest(() => {});

/** Answers with headers and half a message, then with nothing. */
export function hangBody(body: () => Uint8Array): ConnectionFault {
  return onRequest((socket, stream) => {
    const whole = message(body());
    write(socket, headers(stream, grpcHeaders, false));
    write(socket, data(stream, whole.subarray(0, whole.length / 2)));
  });
}

/** Breaks the connection once the request is there. */
export const lose = onRequest((socket) => socket.destroy());

/** Refuses the request with GOAWAY, as not looked at, and hangs up. */
export function goAway(code: number = errorCode.noError, debug = ""): ConnectionFault {
  return onRequest((socket) => {
    write(socket, goaway(0, code, debug));
    socket.end();
  });
}

/** Resets the stream. */
export function reset(code: number): ConnectionFault {
  return onRequest((socket, stream) => write(socket, rstStream(stream, code)));
}

/** What `answerWith` sends; without trailers the stream ends with the body. */
export interface RawAnswer {
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Uint8Array;
  readonly trailers?: Readonly<Record<string, string>>;
}

/** Answers every request with these frames. */
export function answerWith(answer: RawAnswer): ConnectionFault {
  return onRequest((socket, stream) => {
    const body = answer.body ?? Buffer.alloc(0);
    write(socket, headers(stream, { ...grpcHeaders, ...answer.headers }, false));
    write(socket, data(stream, body, answer.trailers === undefined));
    if (answer.trailers !== undefined) write(socket, headers(stream, answer.trailers, true));
  });
}

/** Answers every request with these fields and no body. */
export function answerStatus(fields: () => Readonly<Record<string, string>>): ConnectionFault {
  return onRequest((socket, stream) => write(socket, headers(stream, { ...grpcHeaders, ...fields() }, true)));
}

/** Answers correctly, but the bytes of the connection come one by one. */
export function dribble(body: () => Uint8Array, milliseconds: number): ConnectionFault {
  return (socket, onCall) => {
    const queue: number[] = [];
    const timer = setInterval(() => {
      const byte = queue.shift();
      if (byte !== undefined) write(socket, Buffer.from([byte]));
    }, milliseconds);
    socket.once("close", () => clearInterval(timer));
    readFrames(socket, {
      onPreface: () => write(socket, settings()),
      onRequest(stream) {
        onCall();
        const answer = [headers(stream, grpcHeaders, false), data(stream, message(body()))];
        for (const byte of Buffer.concat(answer)) queue.push(byte);
      },
    });
  };
}

/** Gives a client no window to send its request in, and never will. */
export const noWindow: ConnectionFault = (socket, onCall) => {
  readFrames(socket, {
    onPreface: () => write(socket, settings([[initialWindowSize, 0]])),
    onRequestHeaders: onCall,
  });
};

/** Sends SETTINGS on and on, each of which a client has to acknowledge. */
export const settingsStorm: ConnectionFault = (socket, onCall) => {
  let timer: NodeJS.Timeout | undefined;
  socket.once("close", () => clearInterval(timer));
  readFrames(socket, {
    onPreface() {
      const storm = Buffer.concat(Array.from({ length: 50 }, () => settings([[initialWindowSize, 65535]])));
      timer = setInterval(() => {
        // A client that does not read any more must not fill our memory.
        if (socket.writableLength < 65536) write(socket, storm);
      }, 5);
      write(socket, settings());
    },
    onRequest: onCall,
  });
};

/**
 * Announces a message of so many bytes and sends it as fast as the client's windows allow, from one small buffer. The
 * content is a list of pods in which nothing is wrong, so nothing but its size can be held against it.
 */
export function largeAnswer(bytes: number): ConnectionFault {
  return (socket, onCall) => {
    // A part is a whole pod: field 1, its length, and in it a field 15 of padding, which no pod has.
    const part = Buffer.concat([Buffer.from([0x0a, 0xfd, 0x7f, 0x7a, 0xfa, 0x7f]), Buffer.alloc(16378)]);
    const left = new Map<number, number>();
    const windows = new Map<number, number>([[0, 65535]]);
    let initialWindow = 65535;
    const events: FrameEvents = {
      onPreface: () => write(socket, settings()),
      onRequest(stream) {
        onCall();
        write(socket, headers(stream, grpcHeaders, false));
        write(socket, data(stream, message(Buffer.alloc(0), { length: bytes })));
        grow(stream, initialWindow - 5);
        grow(0, -5);
        left.set(stream, bytes);
        pump();
      },
      onInitialWindow(size) {
        for (const stream of left.keys()) grow(stream, size - initialWindow);
        initialWindow = size;
        pump();
      },
      onWindow(stream, more) {
        grow(stream, more);
        pump();
      },
      onReset: (stream) => void left.delete(stream),
    };
    readFrames(socket, events);
    socket.on("drain", pump);

    function grow(stream: number, more: number): void {
      windows.set(stream, (windows.get(stream) ?? 0) + more);
    }

    function pump(): void {
      for (const [stream, rest] of left) {
        let unsent = rest;
        while (unsent > 0 && !socket.destroyed && !socket.writableNeedDrain) {
          const sent = bytes - unsent;
          const allowed = Math.min(windows.get(0)!, windows.get(stream)!, unsent, part.length - (sent % part.length));
          if (allowed <= 0) break;
          write(socket, data(stream, part.subarray(sent % part.length, (sent % part.length) + allowed)));
          grow(0, -allowed);
          grow(stream, -allowed);
          unsent -= allowed;
        }
        left.set(stream, unsent);
        if (unsent > 0) continue;
        left.delete(stream);
        write(socket, headers(stream, { "grpc-status": "0" }, true));
      }
    }
  };
}
