/** Preloaded into a program (`--import`): appends `host:port` of each TCP connection that the program opens to the file RECORD_CONNECTIONS. */
import { appendFileSync } from 'node:fs';
import net from 'node:net';

const { connect } = net.Socket.prototype;
net.Socket.prototype.connect = function recorded(...given) {
  const [{ host = 'localhost', port, path }] = [given[0]].flat();
  if (path == null && port !== undefined) appendFileSync(process.env.RECORD_CONNECTIONS, `${host}:${port}\n`);
  return connect.apply(this, given);
};
