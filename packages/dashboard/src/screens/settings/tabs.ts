import type { Role } from '@runyard/contract/wire/access';
import type { IconName } from '../../parts/icons.ts';

/** A tab of the settings. Its name is in the address. */
export interface SettingsTab {
  readonly name: string;
  readonly label: string;
  readonly icon: IconName;
  /** The lowest role that may read the content of the tab. */
  readonly needs: Role;
  /** True: the tab is about the whole installation, and only some owners may read it. */
  readonly ofInstallation?: true;
}

/** The tabs of the settings, in their order. */
export const settingsTabs = [
  { name: 'members', label: 'Members', icon: 'people', needs: 'viewer' },
  { name: 'keys', label: 'Keys', icon: 'key', needs: 'viewer' },
  { name: 'secrets', label: 'Secrets', icon: 'lock', needs: 'viewer' },
  { name: 'models', label: 'Models', icon: 'bolt', needs: 'viewer' },
  { name: 'budget', label: 'Budget', icon: 'usage', needs: 'admin' },
  { name: 'code-hosts', label: 'Code hosts', icon: 'git', needs: 'member' },
  { name: 'github', label: 'GitHub', icon: 'pr', needs: 'viewer' },
  { name: 'mcp', label: 'MCP servers', icon: 'link', needs: 'viewer' },
  { name: 'events', label: 'Event subscriptions', icon: 'bell', needs: 'admin' },
  { name: 'audit', label: 'Audit log', icon: 'book', needs: 'admin' },
  { name: 'installation', label: 'Installation', icon: 'worker', needs: 'owner', ofInstallation: true },
] as const satisfies readonly SettingsTab[];
