# Collects what `ssdlab doctor --recorded FILE` judges on another machine. It only reads.
# Windows PowerShell 5.1 or later. As administrator it collects more: wear, temperature.
# Usage: powershell -ExecutionPolicy Bypass -File collect.ps1 [PATH] [FILE]
param([string]$Path = '.', [string]$Out = 'ssdlab-windows.json')
$ErrorActionPreference = 'SilentlyContinue'

$target = (Resolve-Path -LiteralPath $Path).ProviderPath
if (-not $target) { Write-Error "$Path does not exist" -ErrorAction Stop }
$root = [IO.Path]::GetPathRoot($target)
$letter = $root.Substring(0, 1)

# The named properties of objects. Enumerations become their names, as on the screen.
function Select-Values($objects, [string[]]$names) {
    , @($objects | Where-Object { $_ } | ForEach-Object {
            $row = [ordered]@{}
            foreach ($name in $names) {
                $value = $_.$name
                if ($null -ne $value -and $value.GetType().IsEnum) { $value = "$value" }
                $row[$name] = $value
            }
            [pscustomobject]$row
        })
}

# IOCTL_STORAGE_QUERY_PROPERTY, with no right to read or write the drive.
Add-Type -TypeDefinition @'
using System;
using System.Runtime.InteropServices;
public static class SsdlabQuery {
    [DllImport("kernel32.dll", CharSet = CharSet.Unicode, SetLastError = true)]
    static extern IntPtr CreateFileW(string name, uint access, uint share, IntPtr security,
        uint disposition, uint flags, IntPtr template);
    [DllImport("kernel32.dll", SetLastError = true)]
    static extern bool DeviceIoControl(IntPtr file, uint code, byte[] query, int querySize,
        byte[] reply, int replySize, out int returned, IntPtr overlapped);
    [DllImport("kernel32.dll")]
    static extern bool CloseHandle(IntPtr file);
    public static byte[] Property(string drive, int property) {
        IntPtr file = CreateFileW(drive, 0, 3, IntPtr.Zero, 3, 0, IntPtr.Zero);
        if (file == new IntPtr(-1)) return null;
        byte[] query = new byte[12], reply = new byte[64];
        BitConverter.GetBytes(property).CopyTo(query, 0);
        int returned;
        bool done = DeviceIoControl(file, 0x2D1400, query, 12, reply, 64, out returned, IntPtr.Zero);
        CloseHandle(file);
        if (!done) return null;
        byte[] answer = new byte[returned];
        Array.Copy(reply, answer, returned);
        return answer;
    }
}
'@

# A field of a storage property: property 8 has TrimEnabled, 4 the write cache, 6 the alignment.
function Get-Property([int]$disk, [int]$property, [int]$at, [int]$size) {
    $reply = [SsdlabQuery]::Property("\\.\PhysicalDrive$disk", $property)
    if ($null -eq $reply -or $reply.Length -lt $at + $size) { return $null }
    if ($size -eq 1) { return [int]$reply[$at] }
    [BitConverter]::ToInt32($reply, $at)
}

$disks = Select-Values (Get-Disk) @('Number', 'FriendlyName', 'Manufacturer', 'Model',
    'SerialNumber', 'FirmwareVersion', 'BusType', 'PartitionStyle', 'ProvisioningType', 'Size',
    'LogicalSectorSize', 'PhysicalSectorSize', 'IsReadOnly', 'UniqueId')
foreach ($disk in $disks) {
    $trim = Get-Property $disk.Number 8 8 1
    $cache = Get-Property $disk.Number 4 12 4
    $offset = Get-Property $disk.Number 6 24 4
    Add-Member -InputObject $disk -NotePropertyMembers @{
        TrimEnabled = $trim; WriteCacheEnabled = $cache; BytesOffsetForSectorAlignment = $offset
    }
}

$physical = @(Get-PhysicalDisk | ForEach-Object {
        $row = (Select-Values $_ @('DeviceId', 'FriendlyName', 'SerialNumber', 'FirmwareVersion',
                'BusType', 'MediaType', 'SpindleSpeed', 'HealthStatus', 'OperationalStatus', 'Size',
                'LogicalSectorSize', 'PhysicalSectorSize', 'Usage', 'UniqueId'))[0]
        $counters = Select-Values ($_ | Get-StorageReliabilityCounter) @('Wear', 'Temperature',
            'TemperatureMax', 'PowerOnHours', 'ReadErrorsUncorrected', 'WriteErrorsUncorrected',
            'ReadErrorsTotal', 'WriteErrorsTotal', 'FlushLatencyMax', 'StartStopCycleCount')
        Add-Member -InputObject $row -NotePropertyName Counters -NotePropertyValue $counters[0]
        if (Get-Command smartctl) {
            $report = & smartctl --json -x "/dev/pd$($row.DeviceId)" | Out-String
            Add-Member -InputObject $row -NotePropertyName smartctl -NotePropertyValue $report
        }
        $row
    })

$spaces = @(Get-VirtualDisk | ForEach-Object {
        $row = (Select-Values $_ @('FriendlyName', 'UniqueId', 'ResiliencySettingName', 'Size',
                'ProvisioningType', 'HealthStatus', 'OperationalStatus', 'LogicalSectorSize'))[0]
        $members = @($_ | Get-PhysicalDisk | ForEach-Object { $_.UniqueId })
        Add-Member -InputObject $row -NotePropertyName Members -NotePropertyValue $members
        $row
    })

$system = Get-CimInstance Win32_OperatingSystem
$key = 'HKLM:\SYSTEM\CurrentControlSet\Control\FileSystem'
$identity = [Security.Principal.WindowsIdentity]::GetCurrent()
$administrators = [Security.Principal.WindowsBuiltInRole]::Administrator
$task = Get-ScheduledTask -TaskPath '\Microsoft\Windows\Defrag\' -TaskName ScheduledDefrag
$paging = Get-CimInstance Win32_PageFileUsage
# The property that Explorer shows. Get-BitLockerVolume needs an administrator.
$bitlocker = (New-Object -ComObject Shell.Application).NameSpace($root).Self.ExtendedProperty(
    'System.Volume.BitLockerProtection')

$record = [ordered]@{
    'ssdlab-collector' = 1
    system = 'windows'
    target = $target
    letter = $letter
    administrator = ([Security.Principal.WindowsPrincipal]$identity).IsInRole($administrators)
    version = "$($system.Version)"
    memory_kib = $system.TotalVisibleMemorySize
    fsutil = @(& fsutil behavior query DisableDeleteNotify)
    registry = Select-Values (Get-ItemProperty $key) @('DisableDeleteNotification',
        'RefsDisableDeleteNotification')
    optimize_task = if ($task) { "$($task.State)" } else { $null }
    volumes = Select-Values (Get-Volume) @('DriveLetter', 'FileSystem', 'Size', 'SizeRemaining',
        'AllocationUnitSize', 'DriveType', 'HealthStatus', 'Path')
    bitlocker = $bitlocker
    partitions = Select-Values (Get-Partition) @('DiskNumber', 'PartitionNumber', 'DriveLetter',
        'Offset', 'Size', 'Type', 'GptType', 'MbrType')
    disks = $disks
    physical_disks = $physical
    storage_spaces = $spaces
    page_files = Select-Values $paging @('Name', 'AllocatedBaseSize', 'CurrentUsage')
}
# Windows PowerShell's > writes UTF-16; this is UTF-8 without a byte order mark.
$file = if ([IO.Path]::IsPathRooted($Out)) { $Out } else { Join-Path (Get-Location) $Out }
[IO.File]::WriteAllText($file, ($record | ConvertTo-Json -Depth 6))
Write-Output "Wrote $file; judge it with: ssdlab doctor --recorded $([IO.Path]::GetFileName($file))"
