import { expect, test } from 'vitest';
import { createContext } from '../context/context.ts';
import { connect } from './connect.ts';

test('every request of the command asks the service to refuse unknown members', async () => {
  const sent: Headers[] = [];
  const context = createContext({
    RUNYARD_DATA_DIR: '/nonexistent',
    RUNYARD_BASE_URL: 'http://127.0.0.1:1',
    RUNYARD_API_KEY: 'key',
  });
  const client = connect(context, async (_, init) => {
    sent.push(new Headers(init?.headers));
    return Response.json({});
  });
  await client.createRun({ body: { prompt: 'a' } });
  await client.listRuns();
  expect(sent.map((headers) => headers.get('prefer'))).toEqual(['handling=strict', 'handling=strict']);
});
