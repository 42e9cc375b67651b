import { absolutePath, headerSecret, type Setting } from './setting.ts';

/** The rules of the operator about prompts and setup commands. */
export const contentPolicySettings = {
  RUNYARD_CONTENT_POLICY_FILE: {
    read: absolutePath,
    description:
      'YAML or JSON file with the rules that prompts and setup commands must keep (docs/content-policy.md). Absent: no rules.',
    usedBy: ['service', 'cli'],
  },
  RUNYARD_CONTENT_POLICY_KEY: {
    read: headerSecret,
    description: 'Bearer token that the classifier of the content policy gets. Stays in the service.',
    usedBy: ['service'],
    secret: true,
  },
} as const satisfies Record<string, Setting<unknown>>;
