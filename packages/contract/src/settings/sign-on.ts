import { absolutePath, type Setting } from './setting.ts';

/** Settings of single sign-on. */
export const signOnSettings = {
  RUNYARD_OIDC_FILE: {
    read: absolutePath,
    description:
      'YAML or JSON file with the identity providers (OpenID Connect) for single sign-on, and the rules that make members of their groups members of teams (docs/sign-on.md). All service processes need the same value. Absent: people sign in with API keys.',
    usedBy: ['service', 'cli'],
  },
} as const satisfies Record<string, Setting<unknown>>;
