/** Descriptions in the OpenAPI document that several event streams use. */

export const lastEventId =
  'Id of the last event that was read: the stream continues after it, without loss or repetition';
export const notOfStream = 'Last-Event-ID is not an id of this stream';
export const tooManyStreams = 'The key, the team or the service has as many event streams open as it can have';
export const goneEvents = 'Events after Last-Event-ID are no longer stored: connect again without this header';
export const streamRules =
  'Ids are opaque; `Last-Event-ID` continues after one. `retry` says how long to wait before connecting again. While there are no events, a heartbeat is sent every 15 s. A reader that accepts no bytes for a minute is disconnected.';
