import { expect, test } from 'vitest';
import { ServiceRefusal } from './errors.ts';

test("if a proxy refused a body, the error names the setting of the proxy; if the service refused the body, the error has the service's message", () => {
  const page = '<html><title>413 Request Entity Too Large</title></html>';
  expect(new ServiceRefusal(413, '/artifacts', page).message).toContain('client_max_body_size 0');
  const ofService = new ServiceRefusal(413, '/artifacts', JSON.stringify({ detail: 'at most 2 GB' }));
  expect(ofService.message).toBe('the service refused /artifacts with 413: at most 2 GB');
});
