import { Page } from '../../frame/page.tsx';

export function SettingsScreen() {
  return <Page title="SettingsScreen">{null}</Page>;
}
