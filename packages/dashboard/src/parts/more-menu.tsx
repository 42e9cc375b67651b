import { copyText } from './copy.tsx';
import { Icon } from './icon.tsx';
import { Menu, type MenuEntry } from './menu.tsx';

/**
 * Shows the menu ⋯ of a screen. Its first entry copies the command that reads the object of the screen. `path`: the path of the object in
 * the API, such as `/agent/schedules/ID`.
 */
export function MoreMenu({ path, entries = [] }: { path: string; entries?: readonly MenuEntry[] }) {
  const command = `curl -H "Authorization: Bearer $RUNYARD_API_KEY" ${location.origin}/api/v1${path}`;
  return (
    <Menu
      label="More actions"
      className="btn icon"
      entries={[{ label: 'Copy as curl', run: () => void copyText(command, 'Copied the curl command') }, ...entries]}
    >
      <Icon name="more" small />
    </Menu>
  );
}
