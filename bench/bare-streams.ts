/**
 * The baseline of `streams.ts`: a server with only node:http that answers each request with a stream. The program prints the server's
 * port.
 */
import http from 'node:http';

const server = http.createServer((_request, response) => {
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-store' });
  response.write('retry: 1000\n\n');
});
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  if (address && typeof address === 'object') process.stdout.write(`${address.port}\n`);
});
process.stdin.resume().once('end', () => process.exit(0));
