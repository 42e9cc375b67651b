import { copyText } from './copy.tsx';
import { Menu, type MenuEntry } from './menu.tsx';

/** Copies the command that reads an object of the API. */
export function copyAsCurl(path: string): void {
  const command = `curl -H "Authorization: Bearer $RUNYARD_API_KEY" ${location.origin}/api/v1${path}`;
  void copyText(command, 'Copied the curl command');
}

/**
 * Shows the menu ⋯ of a screen. Its first entry copies the command that reads the object of the screen. `path`: the path of the object in
 * the API, such as `/agent/schedules/ID`.
 */
export function MoreMenu({ path, entries = [] }: { path: string; entries?: readonly MenuEntry[] }) {
  return (
    <Menu
      label="More actions"
      icon="more"
      entries={[{ label: 'Copy as curl', run: () => copyAsCurl(path) }, ...entries]}
    />
  );
}
