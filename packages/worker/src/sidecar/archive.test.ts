import { expect, test } from 'vitest';
import { pushAdvice } from './archive.ts';

test.each([
  ['registry.example.com/team/agent:1', 'registry.example.com/team/agent:1', ''],
  ['localhost/agent:1', 'localhost/agent:1', ''],
  ['registry:5000/agent:1', 'registry:5000/agent:1', ''],
  ['team/agent:1', 'REGISTRY/team/agent:1', 'docker tag team/agent:1 REGISTRY/team/agent:1; '],
  ['agent:1.0', 'REGISTRY/agent:1.0', 'docker tag agent:1.0 REGISTRY/agent:1.0; '],
])('the image %s is pushed as %s', (name, target, tag) => {
  expect(pushAdvice(name, 'agent.tar')).toBe(
    `runyard: send it to your registry: skopeo copy oci-archive:agent.tar docker://${target}\n` +
      `runyard: or: docker load --input agent.tar; ${tag}docker push ${target}\n`,
  );
});
