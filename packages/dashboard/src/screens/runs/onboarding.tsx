export function Onboarding() {
  return null;
}
